-- As rotate() of identity/sessions/lifecycle.py; each client rotates sessions of its own, one after the other.
\set j :j + 1
\set n :client_id * :share + :j
BEGIN;
UPDATE refresh_sessions SET status = 'Rotated', updated_at = now()
WHERE id = md5('live/' || :n || '/1')::uuid AND status = 'Active' AND expires_at > now();
SELECT user_id FROM refresh_sessions WHERE id = md5('live/' || :n || '/1')::uuid;
INSERT INTO refresh_sessions (id, user_id, parent_session_id, status, token_hash, created_at, updated_at, expires_at,
                              ip_address, user_agent)
VALUES (gen_random_uuid(), md5('user/' || :n)::uuid, md5('live/' || :n || '/1')::uuid, 'Active',
        repeat(md5('token' || :n), 2), now(), now(), now() + interval '30 days', '10.0.0.1', 'Benchmark/1.0 (child)');
COMMIT;
