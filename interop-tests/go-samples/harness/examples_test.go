package azservicebus_test

// This file is put beside the module's own example_*_test.go, in a copy of the module. It gives them what they take for
// granted (package variables, queues, messages), calls each as it is, and looks at what it printed and what it left.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"
)

// patience is the time that anything may take here.
const patience = 20 * time.Second

// Names that the examples have for what they use.
const (
	queueOfExamples    = "exampleQueue"
	sessionsOfExamples = "exampleSessionQueue"
	deadQueue          = "myqueue"
)

func TestExamples(t *testing.T) {
	text := os.Getenv("SERVICEBUS_CONNECTION_STRING")
	administrator, problem := admin.NewClientFromConnectionString(text, nil)
	require.NoError(t, problem)
	mine, problem := azservicebus.NewClientFromConnectionString(text, nil)
	require.NoError(t, problem)
	own := &house{administrator, mine}
	// The wait for a session that never comes is the last: it takes a minute.
	for _, each := range []struct {
		name string
		run  func(*testing.T, *house)
	}{
		{"ExampleNewClient", makesClient(ExampleNewClient)},
		{"ExampleNewClientFromConnectionString", connectsByString},
		{"ExampleNewClient_configuringRetries", configuresRetries},
		{"ExampleNewClient_usingCustomEndpoint", makesClient(ExampleNewClient_usingCustomEndpoint)},
		{"ExampleNewClient_usingWebsocketsAndProxies", usesWebSockets},
		{"Example_enablingLogging", enablesLogging},
		{"Example_unitTesting", func(*testing.T, *house) { Example_unitTesting() }},
		{"ExampleClient_NewSender", makesSender},
		{"ExampleSender_SendMessage_message", sendsMessage},
		{"ExampleSender_SendMessage_messageBatch", sendsBatch},
		{"ExampleSender_ScheduleMessages", schedules},
		{"ExampleSender_SendAMQPAnnotatedMessage", sendsAnnotated},
		{"ExampleClient_NewReceiverForQueue", makesReceiver(ExampleClient_NewReceiverForQueue)},
		{"ExampleClient_NewReceiverForQueue_deadLetterQueue", makesReceiver(ExampleClient_NewReceiverForQueue_deadLetterQueue)},
		{"ExampleClient_NewReceiverForSubscription", makesReceiver(ExampleClient_NewReceiverForSubscription)},
		{"ExampleClient_NewReceiverForSubscription_deadLetterQueue", makesReceiver(ExampleClient_NewReceiverForSubscription_deadLetterQueue)},
		{"ExampleReceiver_ReceiveMessages", receives},
		{"ExampleReceiver_ReceiveMessages_receiveAndDelete", receivesAndDeletes},
		{"ExampleReceiver_ReceiveMessages_amqpMessage", receivesRaw},
		{"ExampleReceiver_DeadLetterMessage", deadLetters},
		{"ExampleReceiver_ReceiveMessages_second", receivesDeadLetters},
		{"Example_settleWithLockToken", settlesByToken},
		{"Example_autoRenewLocks", renewsLocks},
		{"ExampleClient_AcceptSessionForQueue", acceptsSession},
		{"ExampleClient_AcceptSessionForSubscription", acceptsSessionOfSubscription},
		{"ExampleClient_AcceptNextSessionForQueue", acceptsNextSession},
		{"ExampleClient_AcceptNextSessionForSubscription", acceptsNextSessionOfSubscription},
		{"ExampleClient_NewListSessionsForQueuePager", listsSessions},
		{"ExampleClient_NewListSessionsForSubscriptionPager", listsSessionsOfSubscription},
		{"ExampleClient_NewListSessionsForQueuePager_filteringBySessionStateUpdateTime", listsSessionsWithState},
		{"ExampleClient_AcceptNextSessionForQueue_roundrobin", goesRound},
	} {
		t.Run(each.name, func(t *testing.T) { each.run(t, own) })
	}
}

// house is a way of its own to the broker: the examples' variables are theirs.
type house struct {
	administrator *admin.Client
	client *azservicebus.Client
}

// Making what an example wants

func (h *house) queue(t *testing.T, name string, properties admin.QueueProperties) {
	t.Helper()
	_, problem := h.administrator.CreateQueue(context.Background(), name, &admin.CreateQueueOptions{Properties: &properties})
	require.NoError(t, problem)
	t.Cleanup(func() {
		_, problem := h.administrator.DeleteQueue(context.Background(), name, nil)
		require.NoError(t, problem)
	})
}

func (h *house) sessions(t *testing.T, name string) {
	t.Helper()
	required := true
	h.queue(t, name, admin.QueueProperties{RequiresSession: &required})
}

// subscription makes a topic and a subscription with sessions.
func (h *house) subscription(t *testing.T, topic, name string) {
	t.Helper()
	_, problem := h.administrator.CreateTopic(context.Background(), topic, nil)
	require.NoError(t, problem)
	t.Cleanup(func() {
		_, problem := h.administrator.DeleteTopic(context.Background(), topic, nil)
		require.NoError(t, problem)
	})
	required := true
	_, problem = h.administrator.CreateSubscription(context.Background(), topic, name, &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{RequiresSession: &required},
	})
	require.NoError(t, problem)
}

func (h *house) send(t *testing.T, entity string, messages ...*azservicebus.Message) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	mine, problem := h.client.NewSender(entity, nil)
	require.NoError(t, problem)
	for _, each := range messages {
		require.NoError(t, mine.SendMessage(limit, each, nil))
	}
	require.NoError(t, mine.Close(limit))
}

func body(text string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(text)}
}

func inSession(id, text string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(text), SessionID: &id}
}

// left are the messages that are there, in whatever state.
func (h *house) left(t *testing.T, entity string, sub azservicebus.SubQueue) []*azservicebus.ReceivedMessage {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	mine, problem := h.client.NewReceiverForQueue(entity, &azservicebus.ReceiverOptions{SubQueue: sub})
	require.NoError(t, problem)
	found, problem := mine.PeekMessages(limit, 100, nil)
	require.NoError(t, problem)
	require.NoError(t, mine.Close(limit))
	return found
}

// count is how many messages are there: a queue with sessions is not peeked without one.
func (h *house) count(t *testing.T, queue string) int32 {
	t.Helper()
	properties, problem := h.administrator.GetQueueRuntimeProperties(context.Background(), queue, nil)
	require.NoError(t, problem)
	return properties.ActiveMessageCount
}

func bodies(found []*azservicebus.ReceivedMessage) []string {
	texts := []string{}
	for _, each := range found {
		texts = append(texts, string(each.Body))
	}
	return texts
}

// given sets the examples' client, and closes it with the test.
func given(t *testing.T) {
	t.Helper()
	client, err = azservicebus.NewClientFromConnectionString(os.Getenv("SERVICEBUS_CONNECTION_STRING"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
}

func givenSender(t *testing.T, entity string) {
	t.Helper()
	given(t)
	sender, err = client.NewSender(entity, nil)
	require.NoError(t, err)
}

func givenReceiver(t *testing.T, entity string, mode azservicebus.ReceiveMode) {
	t.Helper()
	given(t)
	receiver, err = client.NewReceiverForQueue(entity, &azservicebus.ReceiverOptions{ReceiveMode: mode})
	require.NoError(t, err)
}

// output is what an example prints, or logs.
type output struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(some []byte) (int, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.text.Write(some)
}

func (o *output) String() string {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.text.String()
}

// has waits until something was printed so often.
func (o *output) has(t *testing.T, text string, times int, wait time.Duration) {
	t.Helper()
	require.Eventuallyf(t, func() bool { return strings.Count(o.String(), text) >= times }, wait, 10*time.Millisecond,
		"%q was not printed %d times", text, times)
}

// printing takes what is printed and logged from now on.
func printing(t *testing.T) *output {
	t.Helper()
	reader, writer, problem := os.Pipe()
	require.NoError(t, problem)
	found, screen, ended := &output{}, os.Stdout, make(chan struct{})
	os.Stdout = writer
	log.SetOutput(found)
	go func() {
		defer close(ended)
		_, _ = io.Copy(found, reader)
	}()
	t.Cleanup(func() {
		os.Stdout = screen
		log.SetOutput(os.Stderr)
		_ = writer.Close()
		<-ended
		if t.Failed() {
			t.Logf("it printed:\n%s", found)
		}
	})
	return found
}

// forever runs an example that never ends, until its client is closed under it.
func forever(t *testing.T, example func()) {
	t.Helper()
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		example()
	}()
	t.Cleanup(func() {
		_ = client.Close(context.Background())
		select {
		case reason := <-ended:
			// The client, its link or its connection.
			if problem, is := reason.(error); !is || !strings.Contains(problem.Error(), "closed") {
				t.Errorf("it ended with %v", reason)
			}
		case <-time.After(patience):
			t.Error("it did not end with its client")
		}
	})
}

// Clients

func makesClient(example func()) func(*testing.T, *house) {
	return func(t *testing.T, _ *house) {
		client = nil
		example()
		require.NotNil(t, client)
	}
}

// works shows that the client that an example made is one.
func works(t *testing.T, h *house) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	mine, problem := client.NewSender(queueOfExamples, nil)
	require.NoError(t, problem)
	require.NoError(t, mine.SendMessage(limit, body("it works"), nil))
	require.NoError(t, client.Close(limit))
	require.Equal(t, []string{"it works"}, bodies(h.left(t, queueOfExamples, 0)))
}

func connectsByString(t *testing.T, h *house) {
	connectionString = os.Getenv("SERVICEBUS_CONNECTION_STRING")
	ExampleNewClientFromConnectionString()
	works(t, h)
}

func identified(t *testing.T) {
	t.Helper()
	endpoint = os.Getenv("SERVICEBUS_ENDPOINT")
	credential, problem := azidentity.NewDefaultAzureCredential(nil)
	require.NoError(t, problem)
	tokenCredential = credential
}

func configuresRetries(t *testing.T, h *house) {
	identified(t)
	ExampleNewClient_configuringRetries()
	works(t, h)
}

func usesWebSockets(t *testing.T, _ *house) {
	identified(t)
	client = nil
	ExampleNewClient_usingWebsocketsAndProxies()
	// It closes its client before that has connected.
	require.NotNil(t, client)
	_, problem := client.NewSender(queueOfExamples, nil)
	require.ErrorContains(t, problem, "closed by user")
}

func enablesLogging(t *testing.T, h *house) {
	found := printing(t)
	Example_enablingLogging()
	t.Cleanup(func() {
		azlog.SetListener(nil)
		azlog.SetEvents()
	})
	given(t)
	works(t, h)
	found.has(t, "[azsb.Conn]", 1, patience)
	found.has(t, "[azsb.Auth]", 1, patience)
}

// Sending

func makesSender(t *testing.T, _ *house) {
	given(t)
	ExampleClient_NewSender()
	require.NotNil(t, sender)
}

func sendsMessage(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	givenSender(t, queueOfExamples)
	ExampleSender_SendMessage_message()
	require.Equal(t, []string{"hello, this is a message"}, bodies(h.left(t, queueOfExamples, 0)))
}

func sendsBatch(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	givenSender(t, queueOfExamples)
	ExampleSender_SendMessage_messageBatch()
	require.Equal(t, []string{"hello world"}, bodies(h.left(t, queueOfExamples, 0)))
}

func schedules(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	givenSender(t, queueOfExamples)
	ExampleSender_ScheduleMessages()
	// Of the two the first was cancelled.
	found := h.left(t, queueOfExamples, 0)
	require.Len(t, found, 1)
	require.Equal(t, azservicebus.MessageStateScheduled, found[0].State)
	require.EqualValues(t, 2, *found[0].SequenceNumber)
	require.WithinDuration(t, time.Now().Add(time.Hour), *found[0].ScheduledEnqueueTime, time.Minute)
}

func sendsAnnotated(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	givenSender(t, queueOfExamples)
	ExampleSender_SendAMQPAnnotatedMessage()
	found := h.left(t, queueOfExamples, 0)
	require.Len(t, found, 1)
	raw := found[0].RawAMQPMessage
	require.Equal(t, "hello", raw.Body.Value)
	require.Equal(t, "test-annotation-value", raw.MessageAnnotations["x-opt-message-test"])
	require.Equal(t, "test-annotation-value", raw.DeliveryAnnotations["x-opt-delivery-test"])
}

// Receiving

func makesReceiver(example func()) func(*testing.T, *house) {
	return func(t *testing.T, _ *house) {
		given(t)
		receiver = nil
		example()
		require.NotNil(t, receiver)
	}
}

func receives(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	h.send(t, queueOfExamples, body("one"), body("two"))
	givenReceiver(t, queueOfExamples, azservicebus.ReceiveModePeekLock)
	found := printing(t)
	ExampleReceiver_ReceiveMessages()
	found.has(t, "Message received with body: one\nReceived and completed the message\n", 1, patience)
	require.Equal(t, []string{"two"}, bodies(h.left(t, queueOfExamples, 0)))
}

func receivesAndDeletes(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	h.send(t, queueOfExamples, body("one"), body("two"), body("three"))
	givenReceiver(t, queueOfExamples, azservicebus.ReceiveModeReceiveAndDelete)
	found := printing(t)
	ExampleReceiver_ReceiveMessages_receiveAndDelete()
	for _, each := range []string{"one", "two", "three"} {
		found.has(t, "Message received with body: "+each+"\n", 1, patience)
	}
	require.Empty(t, h.left(t, queueOfExamples, 0))
}

func receivesRaw(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	h.send(t, queueOfExamples, body("one"), body("two"))
	givenReceiver(t, queueOfExamples, azservicebus.ReceiveModePeekLock)
	ExampleReceiver_ReceiveMessages_amqpMessage()
	require.Equal(t, []string{"two"}, bodies(h.left(t, queueOfExamples, 0)))
}

func deadLetters(t *testing.T, h *house) {
	h.queue(t, deadQueue, admin.QueueProperties{})
	givenSender(t, deadQueue)
	ExampleReceiver_DeadLetterMessage()
	require.Empty(t, h.left(t, deadQueue, 0))
	found := h.left(t, deadQueue, azservicebus.SubQueueDeadLetter)
	require.Equal(t, []string{"body of message"}, bodies(found))
	require.Equal(t, "exampleReason", *found[0].DeadLetterReason)
	require.Equal(t, "exampleErrorDescription", *found[0].DeadLetterErrorDescription)
}

func receivesDeadLetters(t *testing.T, h *house) {
	h.queue(t, deadQueue, admin.QueueProperties{})
	givenSender(t, deadQueue)
	ExampleReceiver_DeadLetterMessage()
	found := printing(t)
	ExampleReceiver_ReceiveMessages_second()
	found.has(t, "DeadLetter Reason: exampleReason\nDeadLetter Description: exampleErrorDescription\n", 1, patience)
	require.Empty(t, h.left(t, deadQueue, azservicebus.SubQueueDeadLetter))
}

func settlesByToken(t *testing.T, h *house) {
	h.queue(t, queueOfExamples, admin.QueueProperties{})
	h.send(t, queueOfExamples, body("one"))
	givenReceiver(t, queueOfExamples, azservicebus.ReceiveModePeekLock)
	found := printing(t)
	Example_settleWithLockToken()
	found.has(t, "Message received with body: one\nReceived and completed the message\n", 1, patience)
	require.Empty(t, h.left(t, queueOfExamples, 0))
}

// renewsLocks stays for the second renewal, which comes when half of the lock's time is over.
func renewsLocks(t *testing.T, h *house) {
	duration := "PT30S"
	h.queue(t, queueOfExamples, admin.QueueProperties{LockDuration: &duration})
	h.send(t, queueOfExamples, &azservicebus.Message{MessageID: &duration, Body: []byte("one")})
	givenReceiver(t, queueOfExamples, azservicebus.ReceiveModePeekLock)
	found := printing(t)
	Example_autoRenewLocks()
	found.has(t, "Renewed lock for "+duration, 2, 2*patience)
}

// Sessions

func acceptsSession(t *testing.T, h *house) {
	h.sessions(t, sessionsOfExamples)
	given(t)
	h.send(t, sessionsOfExamples, inSession("exampleSessionId", "one"), inSession("other", "two"))
	found := printing(t)
	ExampleClient_AcceptSessionForQueue()
	found.has(t, `Received message from session ID "exampleSessionId" and completed it`, 1, patience)
	require.EqualValues(t, 1, h.count(t, sessionsOfExamples))
}

func acceptsSessionOfSubscription(t *testing.T, h *house) {
	h.subscription(t, "exampleTopic", "exampleSubscription")
	given(t)
	ExampleClient_AcceptSessionForSubscription()
	// It has given the session up.
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again, problem := h.client.AcceptSessionForSubscription(limit, "exampleTopic", "exampleSubscription", "exampleSessionId", nil)
	require.NoError(t, problem)
	require.NoError(t, again.Close(limit))
}

func acceptsNextSession(t *testing.T, h *house) {
	h.sessions(t, sessionsOfExamples)
	given(t)
	found := printing(t)
	forever(t, ExampleClient_AcceptNextSessionForQueue)
	h.send(t, sessionsOfExamples, inSession("next", "one"))
	// Its message stays, so that it is granted again.
	found.has(t, `Session receiver was assigned session ID "next"`, 2, patience)
}

func acceptsNextSessionOfSubscription(t *testing.T, h *house) {
	h.subscription(t, "exampleTopicName", "exampleSubscriptionName")
	given(t)
	found := printing(t)
	forever(t, ExampleClient_AcceptNextSessionForSubscription)
	h.send(t, "exampleTopicName", inSession("next", "one"))
	found.has(t, `Session receiver was assigned session ID "next"`, 2, patience)
}

// lines are the printed ones that begin so, sorted.
func lines(found *output, beginning string) []string {
	texts := []string{}
	for line := range strings.Lines(found.String()) {
		if rest, is := strings.CutPrefix(line, beginning); is {
			texts = append(texts, strings.TrimSpace(rest))
		}
	}
	slices.Sort(texts)
	return texts
}

func listsSessions(t *testing.T, h *house) {
	h.sessions(t, sessionsOfExamples)
	given(t)
	h.send(t, sessionsOfExamples, inSession("b", "one"), inSession("a", "two"))
	found := printing(t)
	ExampleClient_NewListSessionsForQueuePager()
	found.has(t, "Session ID: ", 2, patience)
	require.Equal(t, []string{"a", "b"}, lines(found, "Session ID: "))
}

func listsSessionsOfSubscription(t *testing.T, h *house) {
	h.subscription(t, "exampleTopic", "exampleSubscription")
	given(t)
	h.send(t, "exampleTopic", inSession("b", "one"), inSession("a", "two"))
	found := printing(t)
	ExampleClient_NewListSessionsForSubscriptionPager()
	found.has(t, "Session ID: ", 2, patience)
	require.Equal(t, []string{"a", "b"}, lines(found, "Session ID: "))
}

func listsSessionsWithState(t *testing.T, h *house) {
	h.sessions(t, sessionsOfExamples)
	given(t)
	h.send(t, sessionsOfExamples, inSession("without", "one"), inSession("with", "two"))
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	mine, problem := h.client.AcceptSessionForQueue(limit, sessionsOfExamples, "with", nil)
	require.NoError(t, problem)
	require.NoError(t, mine.SetSessionState(limit, []byte("state"), nil))
	require.NoError(t, mine.Close(limit))
	found := printing(t)
	ExampleClient_NewListSessionsForQueuePager_filteringBySessionStateUpdateTime()
	found.has(t, "Recently updated session ID: ", 1, patience)
	require.Equal(t, []string{"with"}, lines(found, "Recently updated session ID: "))
}

func goesRound(t *testing.T, h *house) {
	h.sessions(t, sessionsOfExamples)
	given(t)
	for index := range 6 {
		h.send(t, sessionsOfExamples, inSession(fmt.Sprint("session ", index%3), fmt.Sprint(index)))
	}
	found := printing(t)
	// It ends when the broker says that there is no session.
	ExampleClient_AcceptNextSessionForQueue_roundrobin()
	found.has(t, "No sessions available\n", 1, patience)
	for index := range 3 {
		found.has(t, fmt.Sprintf("Received message for session session %d, ", index), 2, patience)
		found.has(t, fmt.Sprintf("Closing receiver for session 'session %d'", index), 1, patience)
	}
	require.Eventually(t, func() bool { return h.count(t, sessionsOfExamples) == 0 }, patience, 50*time.Millisecond)
}
