// Package dapr runs the conformance tests of Dapr's components for Service Bus (README.md).
package dapr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dapr/components-contrib/bindings/azure/servicebusqueues"
	"github.com/dapr/components-contrib/pubsub"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/queues"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/topics"
	"github.com/dapr/components-contrib/tests/conformance"
	conformancebindings "github.com/dapr/components-contrib/tests/conformance/bindings"
	conformancepubsub "github.com/dapr/components-contrib/tests/conformance/pubsub"
	"github.com/dapr/kit/logger"
)

// Where the module is: its `tests/config` has what its tests are configured by.
var module = os.Getenv("DAPR_MODULE")

var log = logger.NewLogger("dapr")

// components returns those of a kind in the module's list whose names begin with a prefix, each with its properties.
func components(t *testing.T, kind, prefix string) map[string]component {
	t.Helper()
	directory := filepath.Join(module, "tests", "config", kind)
	list, err := conformance.NewTestConfiguration(filepath.Join(directory, "tests.yml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]component{}
	for _, each := range list.Components {
		if !strings.HasPrefix(each.Component, prefix) {
			continue
		}
		conformance.ParseConfigurationMap(t, each.Config)
		path := filepath.Join(append([]string{directory}, strings.Split(each.Component, ".")...)...)
		described, err := conformance.LoadComponents(path)
		if err != nil || len(described) != 1 {
			t.Fatalf("%s: %v, %d components", path, err, len(described))
		}
		properties, err := conformance.ConvertMetadataToProperties(described[0].Spec.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		found[each.Component] = component{each, properties}
	}
	return found
}

type component struct {
	conformance.TestComponent
	properties map[string]string
}

func TestPubsubConformance(t *testing.T) {
	makers := map[string]func(logger.Logger) pubsub.PubSub{
		"azure.servicebus.queues": queues.NewAzureServiceBusQueues,
		"azure.servicebus.topics": topics.NewAzureServiceBusTopics,
	}
	found := components(t, "pubsub", "azure.servicebus.")
	if len(found) != len(makers) {
		t.Fatalf("the module tests %d components", len(found))
	}
	for name, each := range found {
		t.Run(name, func(t *testing.T) {
			config, err := conformancepubsub.NewTestConfig(name, each.Operations, each.Config)
			if err != nil {
				t.Fatal(err)
			}
			conformancepubsub.ConformanceTests(t, each.properties, makers[name](log), config)
		})
	}
}

func TestBindingsConformance(t *testing.T) {
	found := components(t, "bindings", "azure.servicebus")
	if len(found) != 1 {
		t.Fatalf("the module tests %d components", len(found))
	}
	for name, each := range found {
		t.Run(name, func(t *testing.T) {
			config, err := conformancebindings.NewTestConfig(name, each.Operations, each.Config)
			if err != nil {
				t.Fatal(err)
			}
			// As the module's own list of bindings does: one each for input and for output.
			input, output := servicebusqueues.NewAzureServiceBusQueues(log), servicebusqueues.NewAzureServiceBusQueues(log)
			conformancebindings.ConformanceTests(t, each.properties, input, output, config)
		})
	}
}
