"""Operations: the supervisor behind `manage.py up`, and the backups. No HTML, no HTTP views."""
