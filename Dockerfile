# One image for web, worker, beat and migrations; compose.yaml names the command of each.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /srv/berth

COPY requirements.txt .
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements.txt

COPY . .
# The key signs nothing here: collecting files only needs the settings to load. The API's documentation page brings thousands
# of files that production does not serve.
RUN SECRET_KEY=only-to-collect-files python manage.py collectstatic --no-input --ignore drf_spectacular_sidecar \
    && useradd --system --no-create-home berth

USER berth
ENV BIND=0.0.0.0:8000
EXPOSE 8000
CMD ["gunicorn", "--config", "python:config.gunicorn", "config.wsgi:application"]
