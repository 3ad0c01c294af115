-- Whose a conversation is. `job` is what its last job was to do, as JSON.
CREATE TABLE conversations (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    agent   TEXT    NOT NULL,
    user_id TEXT,
    channel TEXT    NOT NULL,
    chat    TEXT,
    peer    TEXT    NOT NULL CHECK (peer IN ('direct', 'group')),
    lane    TEXT    NOT NULL,
    job     TEXT    NOT NULL,
    started INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT;

-- Each circle in the order in which it is listed.
CREATE INDEX conversations_user ON conversations (tenant, agent, user_id, last, session) WHERE peer = 'direct';
CREATE INDEX conversations_group ON conversations (tenant, agent, channel, chat, last, session)
    WHERE peer = 'group';
