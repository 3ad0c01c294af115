-- The ledger: one chain per tenant and node; `line` is what is hashed, to the byte.
CREATE TABLE ledger (
    tenant  TEXT    NOT NULL,
    node    TEXT    NOT NULL,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    session TEXT    NOT NULL,
    call    UUID    NOT NULL,
    event   TEXT    NOT NULL CHECK (event IN ('refused', 'intent', 'outcome')),
    outcome TEXT             CHECK (outcome IN ('done', 'failed', 'unknown')),
    line    TEXT    NOT NULL,
    PRIMARY KEY (tenant, node, seq)
);

-- A call is begun once and ends once.
CREATE UNIQUE INDEX ledger_once ON ledger (call, event) WHERE event <> 'refused';
CREATE INDEX ledger_session ON ledger (tenant, session, event);
CREATE INDEX ledger_time ON ledger (tenant, at);

-- How long each chain is and how it ends, kept apart from it.
CREATE TABLE ledger_head (
    tenant TEXT    NOT NULL,
    node   TEXT    NOT NULL,
    count  BIGINT NOT NULL,
    head   TEXT    NOT NULL,
    PRIMARY KEY (tenant, node)
);

CREATE TABLE approvals (
    id          UUID    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    call        UUID    NOT NULL,
    digest      TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'cancelled', 'used')),
    request     TEXT    NOT NULL,
    answered_by TEXT,
    asked       BIGINT NOT NULL,
    expires     BIGINT NOT NULL
);

-- A call asks one thing at a time.
CREATE UNIQUE INDEX approvals_open ON approvals (tenant, call) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_pending ON approvals (tenant, asked) WHERE state = 'pending';
CREATE INDEX approvals_call ON approvals (tenant, call, digest);
