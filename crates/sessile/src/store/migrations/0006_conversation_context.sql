-- The context that a conversation was held in, and the credential that its calls named: conversations outlive their session. The index is dropped because every command that
-- opens the store reads its definition, and a session has few conversations.
ALTER TABLE conversation ADD context TEXT;
ALTER TABLE conversation ADD account TEXT;
UPDATE conversation SET context = (SELECT context FROM session
    WHERE session.user = conversation.user AND session.id = conversation.session);
DROP INDEX conversation_used;
