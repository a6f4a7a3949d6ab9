-- The tables of sqlite-1.sql, with a chain for each engine. Strings are BYTEA: TEXT takes
-- neither zero bytes nor broken UTF-8.
CREATE TABLE names (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name BYTEA NOT NULL UNIQUE);

CREATE TABLE chains (name BIGINT PRIMARY KEY, seq BIGINT NOT NULL, hash BYTEA, base BIGINT NOT NULL, owner BYTEA NOT NULL);

CREATE TABLE entries (
  chain BIGINT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL,
  kind INTEGER NOT NULL, execution BYTEA NOT NULL, session INTEGER NOT NULL, principal INTEGER NOT NULL,
  server INTEGER NOT NULL, tool INTEGER NOT NULL, status INTEGER NOT NULL, risk SMALLINT NOT NULL,
  micros BIGINT NOT NULL, bytes BIGINT NOT NULL, returned BIGINT NOT NULL, avoided BIGINT NOT NULL,
  hash BYTEA NOT NULL, code BYTEA, facts BYTEA, body BYTEA,
  PRIMARY KEY (chain, seq));

-- No compression: bodies are sealed, and facts are short.
ALTER TABLE entries ALTER COLUMN body SET STORAGE EXTERNAL;

-- An index alone can answer for pages that were vacuumed since they were written.
ALTER TABLE entries SET (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX by_at ON entries (at, chain, seq);
CREATE INDEX by_execution ON entries (execution, at, chain, seq) WHERE execution <> '';
CREATE INDEX by_session ON entries (session, at, chain, seq) INCLUDE (kind, principal, server, tool, status, risk);
CREATE INDEX by_principal ON entries (principal, at, chain, seq) INCLUDE (kind, session, server, tool, status, risk);
CREATE INDEX by_server ON entries (server, at, chain, seq) INCLUDE (kind, session, principal, tool, status, risk) WHERE server <> 0;
CREATE INDEX by_tool ON entries (tool, at, chain, seq) INCLUDE (kind, session, principal, server, status, risk) WHERE tool <> 0;
CREATE INDEX by_kind ON entries (kind, at, chain, seq) INCLUDE (session, principal, server, tool, status, risk);
CREATE INDEX by_status ON entries (status, at, chain, seq) INCLUDE (kind, session, principal, server, tool, risk) WHERE status <> 0;
CREATE INDEX by_risk ON entries (risk, at, chain, seq) INCLUDE (kind, session, principal, server, tool, status) WHERE risk >= 0;

CREATE TABLE keys (
  n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, live INTEGER NOT NULL, id BYTEA NOT NULL,
  session INTEGER NOT NULL, principal INTEGER NOT NULL, wrapped BYTEA NOT NULL);
CREATE UNIQUE INDEX key_by_id ON keys (id) WHERE live = 1;
CREATE INDEX key_by_session ON keys (principal, session) WHERE live = 1;

CREATE TABLE opened (chain BIGINT, execution BYTEA, PRIMARY KEY (chain, execution));
