#!/bin/sh
# Makes the role and the database of the service, when the database server is first started. The role is nobody special:
# row-level security would not hold for a superuser, and the service refuses one.
set -eu
psql --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set password="$(cat "${SESSILE_PASSWORD_FILE:-/run/secrets/sessile-password}")" <<'SQL'
CREATE ROLE sessile LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE sessile OWNER sessile;
SQL
