"""Features of texts: made for every data set, fitted on training data only, found again by hash."""

from ordinate.tune.features.listing import Listing, listed
from ordinate.tune.features.made import Made, MadeFor
from ordinate.tune.features.maker import Fitted, Items, Maker, default_name, maker_of
from ordinate.tune.features.making import make
from ordinate.tune.features.stored import StoredMaker, set_features_for, stored_maker

__all__ = [
    "Fitted",
    "Items",
    "Listing",
    "Made",
    "MadeFor",
    "Maker",
    "StoredMaker",
    "default_name",
    "listed",
    "make",
    "maker_of",
    "set_features_for",
    "stored_maker",
]
