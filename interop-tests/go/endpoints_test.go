package interop

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// endpoint is a running broker: two ports, each of which answers every protocol, and the root key.
type endpoint struct {
	amqp string
	http string
	key  string
}

const rootName = "RootManageSharedAccessKey"

// open is the broker of the suite, which takes any key for good.
func open(t *testing.T) endpoint {
	t.Helper()
	return endpoint{
		amqp: "localhost:" + environment(t, "JITNEY_AMQP_PORT"),
		http: "localhost:" + environment(t, "JITNEY_HTTP_PORT"),
		key:  "SAS_KEY_VALUE",
	}
}

// trust is what a client trusts that was given the broker's own certificate authority.
//
// The name is said because the SDK would take the port for a part of it.
func (p endpoint) trust(t *testing.T) *tls.Config {
	t.Helper()
	b := &bench{T: t}
	status, authority := b.fetch("http://" + p.http + "/ca.pem")
	b.same(status, http.StatusOK)
	roots := x509.NewCertPool()
	b.same(roots.AppendCertsFromPEM([]byte(authority)), true)
	return &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// keyed is a connection string with a key, for TLS.
func keyedString(host, name, key string) string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", host, name, key)
}

// with connects with TLS and a key.
func (p endpoint) with(t *testing.T, name, key string) *bench {
	t.Helper()
	return connectWith(t, keyedString(p.amqp, name, key),
		&azservicebus.ClientOptions{TLSConfig: p.trust(t)})
}

// bearing connects with TLS and a signature in place of a key.
func (p endpoint) bearing(t *testing.T, signature string) *bench {
	t.Helper()
	return connectWith(t, "Endpoint=sb://"+p.amqp+";SharedAccessSignature="+signature,
		&azservicebus.ClientOptions{TLSConfig: p.trust(t)})
}

// administrator administers over HTTPS, on the port that AMQP clients use.
func (p endpoint) administrator(t *testing.T) *administrator {
	t.Helper()
	return p.administratorWith(t, keyedString(p.amqp, rootName, p.key), over(p.trust(t)))
}

func (p endpoint) administratorWith(t *testing.T, text string, transport policy.Transporter) *administrator {
	t.Helper()
	return &administrator{p.with(t, rootName, p.key), administrating(t, text, transport)}
}

// over is an HTTP client that trusts so.
func over(trust *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: trust, IdleConnTimeout: deadline}
	return &http.Client{Transport: transport, Timeout: deadline}
}

// control has the suite's broker start, kill or stop; a stop fails when the broker's exit code is not 0.
func control(t *testing.T, verb string) {
	t.Helper()
	if _, err := run(environment(t, "JITNEY_BROKER_CONTROL"), verb); err != nil {
		t.Fatalf("the broker did not %s: %v", verb, err)
	}
}

// run runs a command of the runner's environment with further arguments, and returns what it prints.
func run(command string, arguments ...string) (string, error) {
	limit, cancel := within(time.Minute)
	defer cancel()
	words := append(strings.Fields(command), arguments...)
	output, err := exec.CommandContext(limit, words[0], words[1:]...).Output()
	return strings.TrimSpace(string(output)), err
}

// The keys of the secured broker's only namespace.
const (
	securedKey  = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ=="
	listenerKey = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE="
	speakerKey  = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE="
)

// secured is a second broker, which verifies keys and tokens (../secured.py).
func secured(t *testing.T) endpoint {
	t.Helper()
	return endpoint{
		amqp: "localhost:" + environment(t, "JITNEY_SECURED_AMQP_PORT"),
		http: "localhost:" + environment(t, "JITNEY_SECURED_HTTP_PORT"),
		key:  securedKey,
	}
}
