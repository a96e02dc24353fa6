-- What a user has changed is found without passing over all that they have read. The actions are those of `changing!`.
CREATE INDEX audit_changes ON audit (user_id, id) WHERE action IN (
    'start_session', 'edit_session', 'end_session', 'append', 'rewind', 'fork', 'set_entry',
    'ask', 'wait', 'renew', 'leave', 'release', 'commit_turn', 'user.add', 'user.disable',
    'user.enable', 'token.create', 'token.revoke', 'login.approve'
);
