-- What stands for the beginning of a conversation: everything up to message `upto`.
CREATE TABLE summaries (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    upto    BIGINT NOT NULL,
    text    JSON   NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, upto)
);
