package cause_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/internal/cause"
)

func TestOf(t *testing.T) {
	tcp := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port} }
	sys := func(call string, errno syscall.Errno) error { return os.NewSyscallError(call, errno) }
	op := func(name string, ours int, err error) error {
		return &net.OpError{Op: name, Net: "tcp", Source: tcp(ours), Addr: tcp(443), Err: err}
	}
	for _, tc := range []struct {
		reason string
		err    error
		want   string
	}{
		{"no error", nil, ""},
		{"no server listens on the port", op("dial", 54321, sys("connect", syscall.ECONNREFUSED)), "dial tcp 10.0.0.1:443: " +
			"connect: connection refused"},
		{"the local port of a connection is removed", op("read", 54321, sys("read", syscall.ECONNRESET)),
			"read tcp 10.0.0.1:443: read: connection reset by peer"},
		{"the certificate has an unknown authority",
			x509.UnknownAuthorityError{}, "x509: certificate signed by unknown authority"},
		{"the current time is removed from an expired certificate",
			x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-01-01T00:00:00Z is after " +
				"2025-01-01T00:00:00Z"},
			"x509: certificate has expired or is not yet valid: after 2025-01-01T00:00:00Z"},
		{"the host name does not exist",
			&net.OpError{Op: "dial", Net: "tcp",
				Err: &net.DNSError{Err: "no such host", Name: "hub.example", Server: "10.0.0.10:53", IsNotFound: true}},
			"lookup hub.example: no such host"},
		{"the name server and its local port are removed from a timeout",
			&net.DNSError{Err: "read udp 10.1.1.1:41234->10.0.0.10:53: i/o timeout", Name: "hub.example",
				Server: "10.0.0.10:53", IsTimeout: true},
			"lookup hub.example: no answer in time"},
		{"the proxy does not listen",
			&net.OpError{Op: "proxyconnect", Net: "tcp", Err: op("dial", 1, sys("connect", syscall.ECONNREFUSED))},
			"proxyconnect tcp: dial tcp 10.0.0.1:443: connect: connection refused"},
		{"the request times out", context.DeadlineExceeded, "no answer in time"},
		{"the server does not use TLS", errors.New("http: server gave HTTP response to HTTPS client"),
			"http: server gave HTTP response to HTTPS client"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.want, cause.Of(tc.err))
			if tc.err != nil {
				wrapped := fmt.Errorf("read the Membership: %w", &url.Error{Op: "Get", URL: "https://hub/apis", Err: tc.err})
				require.Equal(t, tc.want, cause.Of(wrapped), "the cause of a wrapped error is the same")
			}
		})
	}
}
