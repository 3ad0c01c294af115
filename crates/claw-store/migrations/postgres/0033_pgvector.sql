-- Vectors as pgvector has them, where it is there: a copy of those of `passage_vectors`, which are compared one by one
-- where it is not. An index for each length is made when the first vector of that length comes.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS vector;
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'pgvector is not used: %', SQLERRM;
END
$$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        RETURN;
    END IF;
    CREATE TABLE passage_embeddings (
        passage    BIGINT  NOT NULL PRIMARY KEY,
        tenant     TEXT    NOT NULL,
        owner      BIGINT  NOT NULL,
        model      TEXT    NOT NULL,
        dimensions BIGINT  NOT NULL,
        embedding  vector  NOT NULL
    );
    CREATE INDEX passage_embeddings_owner ON passage_embeddings (owner, model);
    CREATE FUNCTION clawsmith_forget_embedding() RETURNS trigger LANGUAGE plpgsql AS $forget$
    BEGIN
        DELETE FROM passage_embeddings WHERE passage = OLD.passage;
        RETURN NULL;
    END
    $forget$;
    CREATE TRIGGER passage_vectors_gone AFTER DELETE ON passage_vectors
        FOR EACH ROW EXECUTE FUNCTION clawsmith_forget_embedding();
END
$$;
