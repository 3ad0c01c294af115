-- The run that wrote a document, and whether it had read untrusted text; a removed document keeps both.
ALTER TABLE documents ADD COLUMN run UUID;
ALTER TABLE documents ADD COLUMN untrusted BOOLEAN NOT NULL DEFAULT FALSE;

-- Sessions whose runs read untrusted text. Documents that they write from then on are untrusted.
CREATE TABLE untrusted_sessions (
    tenant  TEXT   NOT NULL,
    session TEXT   COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, session)
);
