"""Long work: folders, data sets, stored features, checks, manifests, locks, safe files, workers."""
