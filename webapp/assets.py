from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise is untyped
    """Hashed names and gzip, also for the addresses that ES modules import each other by."""

    support_js_module_import_aggregation = True
