"""The certificate authorities that outgoing connections trust."""

import ssl

import httpx2


def trusted_authorities() -> ssl.SSLContext:
    """Return a context for TLS clients that trusts the public authorities and those of this machine.

    Those of the machine are in the system's store, or in the file that `SSL_CERT_FILE` names. The dashboard
    and the prediction servers of a team often have certificates of an authority of their own.
    """
    context = httpx2.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context
