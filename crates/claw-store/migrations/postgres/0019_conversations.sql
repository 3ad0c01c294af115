-- Whose a conversation is. `job` is what its last job was to do. Keys sort by their bytes, as everywhere else.
CREATE TABLE conversations (
    tenant  TEXT   NOT NULL,
    session TEXT   COLLATE "C" NOT NULL,
    agent   TEXT   NOT NULL,
    user_id TEXT,
    channel TEXT   NOT NULL,
    chat    TEXT,
    peer    TEXT   NOT NULL CHECK (peer IN ('direct', 'group')),
    lane    TEXT   NOT NULL,
    job     JSON   NOT NULL,
    started BIGINT NOT NULL,
    last    BIGINT NOT NULL,
    PRIMARY KEY (tenant, session)
) WITH (fillfactor = 80);

-- Each circle in the order in which it is listed.
CREATE INDEX conversations_user ON conversations (tenant, agent, user_id, last, session) WHERE peer = 'direct';
CREATE INDEX conversations_group ON conversations (tenant, agent, channel, chat, last, session)
    WHERE peer = 'group';
