"""Features of texts: made for every data set, fitted on training data only, found again by hash."""

from ordinate.tuning.features.extraction import extract_default_features, extract_features
from ordinate.tuning.features.extraction_report import ExtractedDataset, ExtractionResult
from ordinate.tuning.features.extractor import (
    FeatureExtractor,
    FittedExtractor,
    Items,
    create_extractor,
    default_name,
)
from ordinate.tuning.features.feature_listing import FeatureSetListing, list_feature_sets
from ordinate.tuning.features.new_texts import StoredExtractor, extract_new_features, load_extractor
from ordinate.tuning.features.tfidf import Tfidf

__all__ = [
    "ExtractedDataset",
    "ExtractionResult",
    "FeatureExtractor",
    "FeatureSetListing",
    "FittedExtractor",
    "Items",
    "StoredExtractor",
    "Tfidf",
    "create_extractor",
    "default_name",
    "extract_default_features",
    "extract_features",
    "extract_new_features",
    "list_feature_sets",
    "load_extractor",
]
