"""The storage of static files in production."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise is untyped
    """Hashes and compresses static files, and rewrites the import paths of ES modules."""

    support_js_module_import_aggregation = True
