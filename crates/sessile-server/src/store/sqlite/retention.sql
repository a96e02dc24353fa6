-- What is old is found without looking at everything.
CREATE INDEX event_at ON event (user, at_ms);
