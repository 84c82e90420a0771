package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// Readings of messages

func bodies(messages []*received) []string {
	texts := []string{}
	for _, each := range messages {
		texts = append(texts, string(each.Body))
	}
	return texts
}

func numbers(messages []*received) []int64 {
	found := []int64{}
	for _, each := range messages {
		found = append(found, *each.SequenceNumber)
	}
	return found
}

// origins are the numbers that messages had where they were sent.
func origins(messages []*received) []int64 {
	found := []int64{}
	for _, each := range messages {
		found = append(found, *each.EnqueuedSequenceNumber)
	}
	return found
}

// count is a delivery count as on the wire: the SDK shows one more.
func count(each *received) int {
	return int(each.DeliveryCount) - 1
}

func counts(messages []*received) []int {
	found := []int{}
	for _, each := range messages {
		found = append(found, count(each))
	}
	return found
}

func states(messages []*received) []azservicebus.MessageState {
	found := []azservicebus.MessageState{}
	for _, each := range messages {
		found = append(found, each.State)
	}
	return found
}

// reasons are why messages are dead letters.
func reasons(messages []*received) []string {
	found := []string{}
	for _, each := range messages {
		found = append(found, said(each.DeadLetterReason))
	}
	return found
}

func sessionIDs(messages []*received) []string {
	found := []string{}
	for _, each := range messages {
		found = append(found, said(each.SessionID))
	}
	return found
}

func subjects(messages []*received) []string {
	found := []string{}
	for _, each := range messages {
		found = append(found, said(each.Subject))
	}
	return found
}

// said is a text, or a word for none.
func said(text *string) string {
	if text == nil {
		return "(none)"
	}
	return *text
}

// texts are the numbers from first to last, as bodies.
func texts(first, last int) []string {
	found := []string{}
	for each := first; each <= last; each++ {
		found = append(found, strconv.Itoa(each))
	}
	return found
}

func span(first, last int64) []int64 {
	found := []int64{}
	for each := first; each <= last; each++ {
		found = append(found, each)
	}
	return found
}

func sorted[T int64 | string](values []T) []T {
	slices.Sort(values)
	return values
}

// Checks

// Conditions of AMQP errors that the SDK gives no code of its own.
const (
	entityDisabled        = amqp.ErrCond("com.microsoft:entity-disabled")
	sessionCannotBeLocked = amqp.ErrCond("com.microsoft:session-cannot-be-locked")
)

// must ends the scenario when a call failed.
func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("failed: %v (%T)", err, err)
	}
}

// code checks the code of the SDK's error.
func (b *bench) code(err error, wanted azservicebus.Code) {
	b.Helper()
	if !hasCode(err, wanted) {
		b.Fatalf("wanted code %q, got %v (%T)", wanted, err, err)
	}
}

// notFound checks that there is no such entity, which is told with the answer to the token for it.
func (b *bench) notFound(err error) {
	b.Helper()
	b.code(err, azservicebus.CodeNotFound)
	b.same(strings.Contains(err.Error(), "The messaging entity "), true)
	b.same(strings.Contains(err.Error(), " could not be found"), true)
}

func hasCode(err error, wanted azservicebus.Code) bool {
	var found *azservicebus.Error
	return errors.As(err, &found) && found.Code == wanted
}

// condition checks the AMQP condition of an error to which the SDK gives no code.
func (b *bench) condition(err error, wanted amqp.ErrCond) {
	b.Helper()
	var found *amqp.Error
	if !errors.As(err, &found) || found.Condition != wanted {
		b.Fatalf("wanted %s, got %v (%T)", wanted, err, err)
	}
}

// refused checks that the broker refuses at once, with this text in what is told.
func (b *bench) refused(text string, action func() error) {
	b.Helper()
	start := time.Now()
	err := action()
	switch {
	case err == nil:
		b.Fatal("it was not refused")
	case time.Since(start) > 5*time.Second:
		b.Fatalf("refused too late: %v", err)
	case errors.Is(err, context.DeadlineExceeded):
		b.Fatalf("no answer: %v", err)
	case hasCode(err, azservicebus.CodeTimeout):
		b.Fatalf("not refused, but timed out: %v", err)
	case !strings.Contains(err.Error(), text):
		b.Fatalf("wanted %q, got %v", text, err)
	}
}

// denied checks that nothing may be sent to a queue, nor received from it.
func (b *bench) denied(queue string) {
	b.Helper()
	b.deniedSending(queue)
	b.deniedReceiving(queue)
}

func (b *bench) deniedSending(queue string) {
	b.Helper()
	b.code(b.sender(queue).try(text("denied")), azservicebus.CodeUnauthorizedAccess)
}

func (b *bench) deniedReceiving(queue string) {
	b.Helper()
	b.code(b.receiver(queue).try(), azservicebus.CodeUnauthorizedAccess)
	_, err := b.receiver(queue).tryPeek(1, 1)
	b.code(err, azservicebus.CodeUnauthorizedAccess)
}

// same checks that a value is the one wanted.
func (b *bench) same(found, wanted any) {
	b.Helper()
	if !reflect.DeepEqual(found, wanted) {
		b.Fatalf("found %.2000s, wanted %.2000s", described(found), described(wanted))
	}
}

// described is a value with its types, or with what its pointers point to.
func described(value any) string {
	if kind := reflect.ValueOf(value).Kind(); kind == reflect.Struct || kind == reflect.Map {
		if text, err := json.Marshal(value); err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("%#v", value)
}

func (b *bench) near(found, wanted time.Time, tolerance time.Duration) {
	b.Helper()
	if off := found.Sub(wanted).Abs(); off > tolerance {
		b.Fatalf("%v is %v off %v", found, off, wanted)
	}
}

// fetch is an HTTP GET's status and body.
func (b *bench) fetch(address string) (int, string) {
	b.Helper()
	client := http.Client{Timeout: deadline}
	answer, err := client.Get(address)
	b.must(err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	b.must(err)
	return answer.StatusCode, string(body)
}

// later is a time as the wire carries it: in milliseconds.
func later(wait time.Duration) time.Time {
	return time.Now().Add(wait).Truncate(time.Millisecond).UTC()
}
