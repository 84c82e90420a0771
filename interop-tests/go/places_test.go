package interop

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// place is a running broker: two ports, each of which answers every protocol, and the root key.
type place struct {
	amqp string
	http string
	key  string
	// The issuer of the tokens that are good there, if any are.
	issuer *issuer
}

const rootName = "RootManageSharedAccessKey"

// open is the broker of the suite, which takes any key for good.
func open(t *testing.T) place {
	t.Helper()
	return place{
		amqp: "localhost:" + environment(t, "JITNEY_AMQP_PORT"),
		http: "localhost:" + environment(t, "JITNEY_HTTP_PORT"),
		key:  "SAS_KEY_VALUE",
	}
}

// trust is what a client trusts that was given the broker's own certificate authority.
//
// The name is said because the SDK would take the port for a part of it.
func (p place) trust(t *testing.T) *tls.Config {
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
func (p place) with(t *testing.T, name, key string) *bench {
	t.Helper()
	return connectWith(t, keyedString(p.amqp, name, key),
		&azservicebus.ClientOptions{TLSConfig: p.trust(t)})
}

// bearing connects with TLS and a signature in place of a key.
func (p place) bearing(t *testing.T, signature string) *bench {
	t.Helper()
	return connectWith(t, "Endpoint=sb://"+p.amqp+";SharedAccessSignature="+signature,
		&azservicebus.ClientOptions{TLSConfig: p.trust(t)})
}

// administrator administers over HTTPS, on the port that AMQP clients use.
func (p place) administrator(t *testing.T) *office {
	t.Helper()
	return p.administratorWith(t, keyedString(p.amqp, rootName, p.key), over(p.trust(t)))
}

func (p place) administratorWith(t *testing.T, text string, transport policy.Transporter) *office {
	t.Helper()
	return &office{p.with(t, rootName, p.key), administrating(t, text, transport)}
}

// over is an HTTP client that trusts so.
func over(trust *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: trust, IdleConnTimeout: deadline}
	return &http.Client{Transport: transport, Timeout: deadline}
}

// control asks a broker to start, kill or stop; a stop fails when the broker's exit code is not 0.
func control(t *testing.T, verb string) {
	t.Helper()
	if err := controlled(strings.Fields(environment(t, "JITNEY_BROKER_CONTROL")), verb); err != nil {
		t.Fatal(err)
	}
}

func controlled(words []string, verb string) error {
	limit, cancel := within(time.Minute)
	defer cancel()
	words = append(words[:len(words):len(words)], verb)
	if output, err := exec.CommandContext(limit, words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("the broker did not %s: %w\n%s", verb, err, output)
	}
	return nil
}

// The keys of the guarded broker's only namespace.
const (
	guardedKey  = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ=="
	listenerKey = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE="
	speakerKey  = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE="
)

const guardedConfig = `{
  "UserConfig": { "Namespaces": [ {
    "Name": "guarded",
    "AuthorizationRules": [
      { "Name": "RootManageSharedAccessKey", "Rights": ["Manage", "Send", "Listen"], "PrimaryKey": "%s" },
      { "Name": "listener", "Rights": ["Listen"], "PrimaryKey": "%s" },
      { "Name": "speaker", "Rights": ["Send"], "PrimaryKey": "other", "SecondaryKey": "%s" }
    ],
    "Queues": [], "Topics": []
  } ] }
}`

// guarded is a second broker, which verifies keys and tokens; the first scenario that asks for it starts it.
func guarded(t *testing.T) place {
	t.Helper()
	started, err := guard()
	if err != nil {
		t.Fatalf("the guarded broker: %v", err)
	}
	return started
}

var (
	guard = sync.OnceValues(startGuarded)
	// guardedControl is the command behind it, once it was started.
	guardedControl []string
)

// startGuarded describes a broker as the suite's own is described, but for its rights, and starts it.
func startGuarded() (place, error) {
	directory := filepath.Join(os.Getenv("JITNEY_WORK"), "guarded")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return place{}, err
	}
	text, err := os.ReadFile(os.Getenv("JITNEY_BROKER_STATE"))
	if err != nil {
		return place{}, err
	}
	var state map[string]any
	if err := json.Unmarshal(text, &state); err != nil {
		return place{}, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return place{}, err
	}
	state["config"] = filepath.Join(directory, "config.json")
	state["data_dir"] = filepath.Join(directory, "data")
	state["log"] = filepath.Join(directory, "broker.log")
	state["amqp_port"], state["http_port"] = ports[0], ports[1]
	state["arguments"] = []string{
		"--auth", "sas", "--oidc-issuer", issuerName, "--oidc-jwks", filepath.Join(directory, "keys.json"),
	}
	state["pid"], state["exit_code"] = nil, nil
	if text, err = json.Marshal(state); err != nil {
		return place{}, err
	}
	provider, err := newIssuer()
	if err != nil {
		return place{}, err
	}
	keys, err := provider.keySet()
	if err != nil {
		return place{}, err
	}
	for name, content := range map[string][]byte{
		"config.json": fmt.Appendf(nil, guardedConfig, guardedKey, listenerKey, speakerKey),
		"keys.json":   keys, "broker.json": text,
	} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o644); err != nil {
			return place{}, err
		}
	}
	// The runner's command, with another state file.
	words := strings.Fields(os.Getenv("JITNEY_BROKER_CONTROL"))
	words = append(words[:len(words)-1], filepath.Join(directory, "broker.json"))
	if err := controlled(words, "start"); err != nil {
		return place{}, err
	}
	guardedControl = words
	return place{
		amqp: fmt.Sprint("localhost:", ports[0]), http: fmt.Sprint("localhost:", ports[1]),
		key: guardedKey, issuer: provider,
	}, nil
}

// freePorts are ports that nobody listens on now; all are held until all are known, so that they differ.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// TestMain stops the guarded broker, which must end in good order and must not have panicked.
func TestMain(m *testing.M) {
	code := m.Run()
	if guardedControl != nil {
		if err := controlled(guardedControl, "stop"); err != nil {
			fmt.Println(err)
			code = 1
		}
		log := filepath.Join(os.Getenv("JITNEY_WORK"), "guarded", "broker.log")
		if text, err := os.ReadFile(log); err != nil || bytes.Contains(text, []byte("panicked at")) {
			fmt.Println("the guarded broker panicked, or has no log:", err)
			code = 1
		}
	}
	os.Exit(code)
}
