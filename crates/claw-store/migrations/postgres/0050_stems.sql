-- Words are other ones now: documents are indexed again, and are found by their old words until then. Vectors that are
-- known by their texts stay.
UPDATE documents SET mark = coalesce(mark, nextval('document_marks')) WHERE text IS NOT NULL AND shelf = 'memory';

-- Entities wait for their words: those with fewer than none.
CREATE INDEX graph_entities_unworded ON graph_entities (owner, id) WHERE words < 0;
DELETE FROM graph_words;
UPDATE graph_entities SET words = -1;
