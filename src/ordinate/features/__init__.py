"""Features of texts: made for every data set, fitted on training data only, found again by hash."""

from ordinate.features.extraction import make
from ordinate.features.extraction_report import Made, MadeFor
from ordinate.features.extractor import Fitted, Items, Maker, default_name, maker_of
from ordinate.features.feature_listing import Listing, listed
from ordinate.features.new_texts import StoredMaker, set_features_for, stored_maker

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
