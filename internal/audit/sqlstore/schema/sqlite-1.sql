-- Names that repeat are numbers in entries: rows and indices become a third as large, and
-- an index can hold all columns that a filter asks for. 0 is the empty name.
CREATE TABLE names (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);

-- name is the chain's 16 hexadecimal digits as a number.
CREATE TABLE chains (name INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB, base INTEGER NOT NULL, owner BLOB NOT NULL);

-- A file holds one chain.
CREATE TABLE entries (
  seq INTEGER PRIMARY KEY, chain INTEGER NOT NULL, at INTEGER NOT NULL,
  kind INTEGER NOT NULL, execution BLOB NOT NULL, session INTEGER NOT NULL, principal INTEGER NOT NULL,
  server INTEGER NOT NULL, tool INTEGER NOT NULL, status INTEGER NOT NULL, risk INTEGER NOT NULL,
  micros INTEGER NOT NULL, bytes INTEGER NOT NULL, returned INTEGER NOT NULL, avoided INTEGER NOT NULL,
  hash BLOB NOT NULL, code BLOB, facts BLOB, body BLOB);

-- Each index ends in the order of the answer and then in what other filters ask for, so
-- that rows are only read if they are given out.
CREATE INDEX by_at ON entries (at, seq);
CREATE INDEX by_execution ON entries (execution, at, seq) WHERE execution <> x'';
CREATE INDEX by_session ON entries (session, at, seq, kind, principal, server, tool, status, risk);
CREATE INDEX by_principal ON entries (principal, at, seq, kind, session, server, tool, status, risk);
CREATE INDEX by_server ON entries (server, at, seq, kind, session, principal, tool, status, risk) WHERE server <> 0;
CREATE INDEX by_tool ON entries (tool, at, seq, kind, session, principal, server, status, risk) WHERE tool <> 0;
CREATE INDEX by_kind ON entries (kind, at, seq, session, principal, server, tool, status, risk);
CREATE INDEX by_status ON entries (status, at, seq, kind, session, principal, server, tool, risk) WHERE status <> 0;
CREATE INDEX by_risk ON entries (risk, at, seq, kind, session, principal, server, tool, status) WHERE risk >= 0;

-- To forget a key is to write zeros over it in its place: rows never move, so no page
-- keeps a copy of one.
CREATE TABLE keys (
  n INTEGER PRIMARY KEY, live INTEGER NOT NULL, id BLOB NOT NULL,
  session INTEGER NOT NULL, principal INTEGER NOT NULL, wrapped BLOB NOT NULL);
CREATE UNIQUE INDEX key_by_id ON keys (id) WHERE live = 1;
CREATE INDEX key_by_session ON keys (principal, session) WHERE live = 1;

CREATE TABLE opened (chain INTEGER, execution BLOB, PRIMARY KEY (chain, execution)) WITHOUT ROWID;
