"""Operations: the supervisor of `manage.py up`, backup and restore."""
