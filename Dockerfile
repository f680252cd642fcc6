# One image for all services; docker-compose.yml has the command of each.
FROM python:3.13-slim AS build
# For NVIDIA GPUs: docker build --build-arg LOCK=requirements-gpu.lock, or requirements-gpu12.lock for CUDA 12
ARG LOCK=requirements.lock
COPY ${LOCK} /build/requirements.lock
RUN python -m venv /opt/trainyard \
 && /opt/trainyard/bin/pip install --no-cache-dir --require-hashes -r /build/requirements.lock
COPY . /srv/trainyard
# The files of a checkout may be private to its owner, but the image's user and the runners must read them.
RUN chmod -R a+rX,go-w /srv/trainyard

FROM python:3.13-slim
# `manage.py backup` and `restore` need pg_dump and pg_restore. Bubblewrap is left out: it refuses to start with the
# capabilities of the worker, and containers may not make the namespaces that it needs without them.
RUN apt-get update \
 && apt-get install -y --no-install-recommends postgresql-client \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home --home-dir /var/lib/trainyard trainyard \
 && install -d -o trainyard -g trainyard -m 0700 /data /backups
COPY --from=build /opt/trainyard /opt/trainyard
COPY --from=build /srv/trainyard /srv/trainyard
WORKDIR /srv/trainyard
ENV PATH=/opt/trainyard/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TRAINYARD_HOME=/data \
    TRAINYARD_SANDBOX_LEVELS=landlock,process
USER trainyard
VOLUME /data
EXPOSE 8000 8501
# Checks the dashboard; docker-compose.yml has the health checks of the other services.
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s \
    CMD ["python", "scripts/probe", "http://127.0.0.1:8000/healthz"]
# By default, a container runs the whole installation: broker, web, scheduler, worker and prediction server.
CMD ["python", "manage.py", "up", "--host", "0.0.0.0"]
