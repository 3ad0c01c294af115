-- Says at commit that rows of a tenant changed: a topic and the tenant, never content.
CREATE FUNCTION clawsmith_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', TG_ARGV[0] || ' ' || NEW.tenant);
    RETURN NULL;
END
$$;

-- The ledger: one chain per tenant and node; `line` is what is hashed, to the byte.
CREATE TABLE ledger (
    position BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY,
    tenant   TEXT   NOT NULL,
    node     TEXT   NOT NULL,
    seq      BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    session  TEXT   NOT NULL,
    call     UUID   NOT NULL,
    event    TEXT   NOT NULL CHECK (event IN ('refused', 'intent', 'outcome')),
    outcome  TEXT            CHECK (outcome IN ('done', 'failed', 'unknown')),
    line     TEXT   NOT NULL,
    PRIMARY KEY (tenant, node, seq)
);

-- A call is begun once and ends once, whichever node runs it.
CREATE UNIQUE INDEX ledger_once ON ledger (tenant, call, event) WHERE event <> 'refused';
CREATE INDEX ledger_session ON ledger (tenant, session, event, outcome);
CREATE INDEX ledger_recent ON ledger (tenant, position);

-- How long each chain is and how it ends, kept apart from it.
CREATE TABLE ledger_head (
    tenant TEXT   NOT NULL,
    node   TEXT   NOT NULL,
    count  BIGINT NOT NULL,
    head   TEXT   NOT NULL,
    PRIMARY KEY (tenant, node)
) WITH (fillfactor = 50);

-- `request` is JSON and not JSONB, here and below: JSONB refuses a text that holds a NUL.
CREATE TABLE approvals (
    id          UUID   NOT NULL PRIMARY KEY,
    tenant      TEXT   NOT NULL,
    session     TEXT   NOT NULL,
    agent       TEXT   NOT NULL,
    call        UUID   NOT NULL,
    digest      TEXT   NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'cancelled', 'used')),
    request     JSON   NOT NULL,
    answered_by TEXT,
    asked       BIGINT NOT NULL,
    expires     BIGINT NOT NULL
);

-- A call of one session and agent asks one thing at a time; callers choose its id, so others may name it too.
CREATE UNIQUE INDEX approvals_open ON approvals (tenant, session, agent, call) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_pending ON approvals (tenant, asked, id) WHERE state = 'pending';
CREATE INDEX approvals_call ON approvals (tenant, session, agent, call, digest, id);

CREATE TRIGGER approvals_changed AFTER INSERT OR UPDATE ON approvals
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('approvals');
