"""The study of intervals where tables are too many to resample: what it counts, and says."""

import math

import numpy as np
import pytest
from study import load_study

many_tables = load_study("many_tables")
