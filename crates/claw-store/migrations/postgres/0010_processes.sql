-- Background processes; `begun` is all that was said of one, the other columns are what is looked for.
CREATE TABLE processes (
    tenant  TEXT    NOT NULL,
    id      UUID    NOT NULL,
    session TEXT    NOT NULL,
    node    TEXT    NOT NULL,
    boot    UUID    NOT NULL,
    begun   TEXT    NOT NULL,
    started BIGINT  NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('running', 'exited', 'killed', 'lost')),
    code    INTEGER,
    signal  INTEGER,
    ended   BIGINT           CHECK ((ended IS NULL) = (state = 'running')),
    PRIMARY KEY (tenant, id)
);

CREATE INDEX processes_session ON processes (tenant, session, started, id);
CREATE INDEX processes_running ON processes (node, boot) WHERE state = 'running';

CREATE TRIGGER processes_changed AFTER INSERT OR UPDATE ON processes
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('processes');
