"""The times of Leases by default, in seconds: client-go's."""

#: After it another process may take a Lease from a silent holder.
LEASE_DURATION = 15.0
#: A holder that couldn't renew its Lease for so long stops working.
RENEW_DEADLINE = 10.0
#: Between two attempts.
RETRY_PERIOD = 2.0
