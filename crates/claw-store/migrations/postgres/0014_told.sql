-- Whoever follows a conversation hears of what is new in it.
CREATE TRIGGER events_told AFTER INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('sessions');
