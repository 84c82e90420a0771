// Package jitneytest starts one Jitney for the tests of a package, and gives each test a namespace of its own. Copy
// this file and Config.json.
//
// JITNEY_BINARY names the program; without it, jitney is looked for in PATH.
package jitneytest

import (
	"bufio"
	"cmp"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Every namespace has the entities of this file.
//
//go:embed Config.json
var config string

const limit = 30 * time.Second

// Namespace is a namespace of one test.
type Namespace struct {
	// ConnectionString has the host NAME.localhost.
	ConnectionString string
	// Endpoint is the broker's address, for CustomEndpoint: not every machine resolves names below localhost.
	Endpoint string
}

// NewNamespace makes a namespace, which is deleted at the end of the test.
func NewNamespace(t testing.TB) Namespace {
	t.Helper()
	broker, err := start()
	if err != nil {
		t.Fatal(err)
	}
	name := "test-" + strings.ToLower(rand.Text())
	if err := broker.request(http.MethodPut, name, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.request(http.MethodDelete, name, ""); err != nil {
			t.Error(err)
		}
	})
	return Namespace{strings.Replace(broker.connectionString, broker.address, name+"."+broker.address, 1), broker.address}
}

type broker struct {
	connectionString, address string
	// Held open for as long as the broker is to run.
	stdin io.Closer
}

// One for the process of a package's tests.
var start = sync.OnceValues(startBroker)

var connect = regexp.MustCompile(`Endpoint=sb://(localhost:\d+);[^\s"]+`)

func startBroker() (broker, error) {
	program, err := exec.LookPath(cmp.Or(os.Getenv("JITNEY_BINARY"), "jitney"))
	if err != nil {
		return broker{}, fmt.Errorf("there is no program jitney in PATH, nor where JITNEY_BINARY says: %w", err)
	}
	command := exec.Command(program, "serve", "--ephemeral", "--config-json", config,
		"--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--stop-on-stdin-close")
	// The broker stops when its input is closed, which the system does when this process ends, however it ends.
	stdin, err := command.StdinPipe()
	if err != nil {
		return broker{}, err
	}
	log, err := command.StderrPipe()
	if err != nil {
		return broker{}, err
	}
	if err := command.Start(); err != nil {
		return broker{}, err
	}
	timer := time.AfterFunc(limit, func() { command.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(log)
	said := ""
	for {
		line, err := lines.ReadString('\n')
		said += line
		if found := connect.FindStringSubmatch(line); found != nil {
			// The rest of the log is read, so that the broker never waits for that.
			go io.Copy(io.Discard, lines)
			return broker{found[0], found[1], stdin}, nil
		}
		if err != nil {
			return broker{}, fmt.Errorf("the broker has not started:\n%s", said)
		}
	}
}

func (b broker) request(method, name, body string) error {
	request, err := http.NewRequest(method, "http://"+b.address+"/api/v1/namespaces/"+name, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Timeout: limit}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, name, answer.Status, text)
	}
	return nil
}
