-- As confirm() of identity/sessions/lifecycle.py; each client confirms requests of its own, one after the other.
\set i :i + 1
\set n :client_id * :share + :i
UPDATE sign_in_confirmation_requests SET status = 'Confirmed', confirmed_at = now(), updated_at = now()
WHERE id = md5('live/' || :n)::uuid AND status = 'Pending' AND expires_at > now();
