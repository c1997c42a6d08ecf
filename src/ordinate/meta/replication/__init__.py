"""The synthetic study of the CEM paper, run again: nothing else needs what is here."""
