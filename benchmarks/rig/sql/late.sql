-- A device comes back with a session that has run out, perhaps while the job is at it: it is refused without a wait.
\set n random(1, :due)
UPDATE refresh_sessions SET status = 'Rotated', updated_at = now()
WHERE id = md5('due/' || :n || '/1')::uuid AND status = 'Active' AND expires_at > now();
