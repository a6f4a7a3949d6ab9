"""The network of programs, where they have one: a proxy, which the environment
names. Libraries that know proxies find it there; for those that do not, whatever
would connect to a host goes through a tunnel."""

import os

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")
LONGEST = 64 << 10  # bytes of an answer's head


def kept():
    """What stays of the environment."""
    return {name: os.environ[name] for name in NAMES if name in os.environ}


def install():
    """Has connections go through the proxy, if there is one."""
    host, _, port = os.environ.get("HTTPS_PROXY", "").rpartition("/")[2].partition(":")
    if not port.isdigit():
        return
    import socket

    proxy, connect = (host, int(port)), socket.create_connection

    def create_connection(address, *args, **kwargs):
        if tuple(address) == proxy:
            return connect(address, *args, **kwargs)
        kwargs.pop("source_address", None)
        connection = connect(proxy, *args[:1], **kwargs)
        try:
            tunnel(connection, *address)
        except BaseException:
            connection.close()
            raise
        return connection

    socket.create_connection = create_connection


def tunnel(connection, host, port):
    """Asks the proxy to lead a connection to a host."""
    name = str(host)
    if not name.isascii():
        name = name.encode("idna").decode()
    if not name.isprintable() or " " in name:
        raise OSError("the host %r contains an invalid character" % (host,))
    target = "%s:%d" % (name, int(port))
    connection.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target)).encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)  # what follows is not the proxy's
        if not byte or len(answer) > LONGEST:
            raise OSError("the proxy answered %r" % answer[:200])
        answer += byte
    status = answer.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    if status[1:2] != ["200"]:
        raise OSError("Tunnel connection failed: " + " ".join(status[1:]))
