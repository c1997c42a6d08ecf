"""Long work: experiment folders, studies, locks, manifests, safe model files."""
