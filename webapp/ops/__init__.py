"""Operations: the supervisor behind `manage.py up`, backup and restore."""
