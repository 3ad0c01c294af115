-- The model that extracted a mention, and the run that wrote the document as that model read it. Empty for mentions of people
-- and for those that were extracted before this column was there.
ALTER TABLE graph_mentions ADD COLUMN model TEXT;
ALTER TABLE graph_mentions ADD COLUMN run UUID;
