package scalers_test

// This file is put beside KEDA's scaler for Service Bus, which it uses as KEDA does: it makes one of the metadata of a
// trigger, and asks it for its metric, and whether there is work.

import (
	"context"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

const patience = 20 * time.Second

// TestMain makes what KEDA's own test of a running service wants: one message in each of its two places.
func TestMain(m *testing.M) {
	t := &outside{}
	h := begin(t)
	h.queue(t, "testqueue")
	h.subscription(t, "testtopic", "testsubscription")
	h.send(t, "testqueue", 1)
	h.send(t, "testtopic", 1)
	os.Exit(m.Run())
}

// outside is no test: what fails there ends the program.
type outside struct{}

func (*outside) Helper()                           {}
func (*outside) Errorf(format string, some ...any) { _, _ = os.Stderr.WriteString(format) }
func (*outside) FailNow()                          { os.Exit(1) }

// tester is a test, or what is before all tests.
type tester interface {
	require.TestingT
	Helper()
}

type house struct {
	administrator *admin.Client
	client *azservicebus.Client
}

func begin(t tester) *house {
	t.Helper()
	text := os.Getenv("SERVICEBUS_CONNECTION_STRING")
	administrator, err := admin.NewClientFromConnectionString(text, nil)
	require.NoError(t, err)
	client, err := azservicebus.NewClientFromConnectionString(text, nil)
	require.NoError(t, err)
	return &house{administrator, client}
}

func (h *house) queue(t tester, name string) {
	t.Helper()
	_, err := h.administrator.CreateQueue(context.Background(), name, nil)
	require.NoError(t, err)
}

func (h *house) subscription(t tester, topic string, names ...string) {
	t.Helper()
	_, err := h.administrator.CreateTopic(context.Background(), topic, nil)
	require.NoError(t, err)
	for _, each := range names {
		_, err = h.administrator.CreateSubscription(context.Background(), topic, each, nil)
		require.NoError(t, err)
	}
}

func (h *house) send(t tester, entity string, many int) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sender, err := h.client.NewSender(entity, nil)
	require.NoError(t, err)
	for range many {
		require.NoError(t, sender.SendMessage(limit, &azservicebus.Message{Body: []byte("work")}, nil))
	}
	require.NoError(t, sender.Close(limit))
}

// complete takes messages out, so many.
func complete(t *testing.T, receiver *azservicebus.Receiver, many int) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range many {
		messages, err := receiver.ReceiveMessages(limit, 1, nil)
		require.NoError(t, err)
		require.NoError(t, receiver.CompleteMessage(limit, messages[0], nil))
	}
	require.NoError(t, receiver.Close(limit))
}

// trigger makes the scaler of a trigger.
func trigger(t *testing.T, metadata map[string]string) scalers.Scaler {
	t.Helper()
	return triggerWith(t, os.Getenv("SERVICEBUS_CONNECTION_STRING"), metadata)
}

func triggerWith(t *testing.T, connection string, metadata map[string]string) scalers.Scaler {
	t.Helper()
	made, err := scalers.NewAzureServiceBusScaler(&scalersconfig.ScalerConfig{
		TriggerMetadata: metadata, AuthParams: map[string]string{"connection": connection}, GlobalHTTPTimeout: patience,
	})
	require.NoError(t, err)
	return made
}

// measures checks what a scaler says: how much there is, and whether it is enough to begin.
func measures(t *testing.T, scaler scalers.Scaler, wanted int64, active bool) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, is, err := scaler.GetMetricsAndActivity(limit, "metric")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "metric", found[0].MetricName)
	require.Equal(t, wanted, found[0].Value.Value())
	require.Equal(t, active, is)
}

// fails checks that a scaler has no metric, and why.
func fails(t *testing.T, scaler scalers.Scaler, why string) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, active, err := scaler.GetMetricsAndActivity(limit, "metric")
	require.ErrorContains(t, err, why)
	require.False(t, active)
}

func TestS411_a_queue_is_measured(t *testing.T) {
	h := begin(t)
	h.queue(t, "s411")
	scaler := trigger(t, map[string]string{"queueName": "s411", "messageCount": "2", "activationMessageCount": "1"})
	specification := scaler.GetMetricSpecForScaling(context.Background())
	require.Len(t, specification, 1)
	require.Equal(t, "s0-azure-servicebus-s411", specification[0].External.Metric.Name)
	require.EqualValues(t, 2, specification[0].External.Target.AverageValue.Value())
	measures(t, scaler, 0, false)
	h.send(t, "s411", 1)
	measures(t, scaler, 1, false)
	h.send(t, "s411", 2)
	measures(t, scaler, 3, true)
	receiver, err := h.client.NewReceiverForQueue("s411", nil)
	require.NoError(t, err)
	complete(t, receiver, 3)
	measures(t, scaler, 0, false)
	require.NoError(t, scaler.Close(context.Background()))
}

func TestS412_a_subscription_is_measured(t *testing.T) {
	h := begin(t)
	h.subscription(t, "s412", "a", "b")
	scaler := trigger(t, map[string]string{"topicName": "s412", "subscriptionName": "a"})
	require.Equal(t, "s0-azure-servicebus-s412", scaler.GetMetricSpecForScaling(context.Background())[0].External.Metric.Name)
	h.send(t, "s412", 2)
	measures(t, scaler, 2, true)
	receiver, err := h.client.NewReceiverForSubscription("s412", "a", nil)
	require.NoError(t, err)
	complete(t, receiver, 2)
	measures(t, scaler, 0, false)
	measures(t, trigger(t, map[string]string{"topicName": "s412", "subscriptionName": "b"}), 2, true)
}

func TestS413_many_queues_are_measured_together(t *testing.T) {
	h := begin(t)
	for name, many := range map[string]int{"s413-one": 1, "s413-two": 5, "s413-three": 0, "s413": 7} {
		h.queue(t, name)
		h.send(t, name, many)
	}
	// More queues than there are in a page of the list.
	for index := range 110 {
		h.queue(t, "s413-other-"+string(rune('a'+index/26))+string(rune('a'+index%26)))
	}
	metadata := map[string]string{"queueName": "s413-(one|two|three)", "useRegex": "true"}
	for operation, wanted := range map[string]int64{"sum": 6, "max": 5, "avg": 2} {
		chosen := maps.Clone(metadata)
		chosen["operation"] = operation
		measures(t, trigger(t, chosen), wanted, true)
	}
	measures(t, trigger(t, map[string]string{"queueName": "s413-other.*", "useRegex": "true"}), 0, false)
}

func TestS414_many_subscriptions_are_measured_together(t *testing.T) {
	h := begin(t)
	h.subscription(t, "s414", "a1", "a2", "b1")
	h.send(t, "s414", 2)
	metadata := map[string]string{"topicName": "s414", "subscriptionName": "a[0-9]", "useRegex": "true", "operation": "sum"}
	measures(t, trigger(t, metadata), 4, true)
}

func TestS415_what_is_not_there_has_no_measure(t *testing.T) {
	h := begin(t)
	h.subscription(t, "s415", "a")
	fails(t, trigger(t, map[string]string{"queueName": "s415-no-such"}), "doesn't exist")
	fails(t, trigger(t, map[string]string{"topicName": "s415", "subscriptionName": "no-such"}), "doesn't exist")
	fails(t, trigger(t, map[string]string{"topicName": "s415-no-such", "subscriptionName": "a"}), "doesn't exist")
}

func TestS416_a_key_that_may_not_manage_measures_nothing(t *testing.T) {
	h := begin(t)
	h.queue(t, "s416")
	for _, each := range []string{"LISTENER_CONNECTION_STRING", "WRONG_CONNECTION_STRING"} {
		fails(t, triggerWith(t, os.Getenv(each), map[string]string{"queueName": "s416"}), "401")
	}
}

func TestS417_a_pods_identity_measures(t *testing.T) {
	h := begin(t)
	h.queue(t, "s417")
	h.send(t, "s417", 1)
	made, err := scalers.NewAzureServiceBusScaler(&scalersconfig.ScalerConfig{
		TriggerMetadata: map[string]string{
			"queueName": "s417", "namespace": os.Getenv("NAMESPACE"), "cloud": "Private", "endpointSuffix": os.Getenv("SUFFIX"),
		},
		PodIdentity:       v1alpha1.AuthPodIdentity{Provider: v1alpha1.PodIdentityProviderAzureWorkload},
		GlobalHTTPTimeout: patience,
	})
	require.NoError(t, err)
	measures(t, made, 1, true)
}
