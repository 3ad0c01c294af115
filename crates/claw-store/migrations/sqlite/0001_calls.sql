-- The ledger: one chain per tenant and node; `line` is what is hashed, to the byte.
CREATE TABLE ledger (
    position INTEGER NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    node     TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    session  TEXT    NOT NULL,
    call     BLOB    NOT NULL,
    event    TEXT    NOT NULL CHECK (event IN ('refused', 'intent', 'outcome')),
    outcome  TEXT             CHECK (outcome IN ('done', 'failed', 'unknown')),
    line     TEXT    NOT NULL,
    UNIQUE (tenant, node, seq)
) STRICT;

-- A call is begun once and ends once.
CREATE UNIQUE INDEX ledger_once ON ledger (tenant, call, event) WHERE event <> 'refused';
CREATE INDEX ledger_session ON ledger (tenant, session, event, outcome);
CREATE INDEX ledger_recent ON ledger (tenant, position);

-- How long each chain is and how it ends, kept apart from it.
CREATE TABLE ledger_head (
    tenant TEXT    NOT NULL,
    node   TEXT    NOT NULL,
    count  INTEGER NOT NULL,
    head   TEXT    NOT NULL,
    PRIMARY KEY (tenant, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
    id          BLOB    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    call        BLOB    NOT NULL,
    digest      TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'cancelled', 'used')),
    request     TEXT    NOT NULL,
    answered_by TEXT,
    asked       INTEGER NOT NULL,
    expires     INTEGER NOT NULL
) STRICT;

-- A call of one session and agent asks one thing at a time; callers choose its id, so others may name it too.
CREATE UNIQUE INDEX approvals_open ON approvals (tenant, session, agent, call) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_pending ON approvals (tenant, asked, id) WHERE state = 'pending';
CREATE INDEX approvals_call ON approvals (tenant, session, agent, call, digest, id);
