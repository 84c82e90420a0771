// The load of load.py in small, with the Go SDK: a sender and a receiver for the queue `go` of each namespace, which write the same journal.
//
//	goload JOURNAL ADDRESS NAMESPACE...
//
// They work until the input ends; then the sender stops, and the receiver completes what is there until nothing comes any more.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	queue     = "go"
	pause     = 50 * time.Millisecond
	retryTime = 50 * time.Millisecond
	quietTime = 3 * time.Second
	drainTime = 60 * time.Second
)

// A request without an answer for so long is given up, with its client: longer on a machine with other work, as load.py has it.
var answerTime = time.Duration(5 * min(patience(), 3) * float64(time.Second))

func patience() float64 {
	found, err := strconv.ParseFloat(os.Getenv("JITNEY_PATIENCE"), 64)
	if err != nil {
		return 1
	}
	return found
}

var (
	journal  *os.File
	address  string
	life     = fmt.Sprintf("go%x%x", os.Getpid(), time.Now().Unix()&0xfffff)
	stopping atomic.Bool
	// When a receiver last got a message.
	lastGot atomic.Int64
)

// now is the monotonic clock that Python's time.monotonic() reads, too.
func now() float64 {
	var at syscall.Timespec
	const clockMonotonic = 1
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return float64(at.Sec) + float64(at.Nsec)/1e9
}

// note writes a line of the journal, with one system call.
func note(event, entity string, ids []string, more any) {
	line, err := json.Marshal([]any{now(), event, entity, ids, more})
	check(err)
	_, err = journal.Write(append(line, '\n'))
	check(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func body(id string) string {
	return id + " " + strings.Repeat("go", len(id))
}

func timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerTime)
}

// client makes a client without the SDK's tries: a request whose answer is lost must stay one.
func client(namespace string) *azservicebus.Client {
	text := fmt.Sprintf("Endpoint=sb://%s.localhost:%s;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
		namespace, address[strings.LastIndex(address, ":")+1:])
	made, err := azservicebus.NewClientFromConnectionString(text, &azservicebus.ClientOptions{
		CustomEndpoint: address, RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	check(err)
	return made
}

// forever does the work again and again, with a new client after each fault, until the context ends.
func forever(ctx context.Context, namespace string, work func(context.Context, *azservicebus.Client, string) error) {
	entity := namespace + "/" + queue
	for ctx.Err() == nil {
		connected := client(namespace)
		err := work(ctx, connected, entity)
		if err != nil && ctx.Err() == nil {
			note("fault", entity, []string{}, fmt.Sprintf("%.200s", err.Error()))
			time.Sleep(retryTime)
		}
		ending, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = connected.Close(ending)
		cancel()
		if err == nil {
			return
		}
	}
}

var made atomic.Int64

func send(ctx context.Context, client *azservicebus.Client, entity string) error {
	sender, err := client.NewSender(queue, nil)
	if err != nil {
		return err
	}
	for !stopping.Load() {
		id := fmt.Sprintf("%s-%d", life, made.Add(1))
		note("send?", entity, []string{id}, nil)
		asked, cancel := timeout(ctx)
		err := sender.SendMessage(asked, &azservicebus.Message{Body: []byte(body(id)), MessageID: &id}, nil)
		cancel()
		if err != nil {
			return err
		}
		note("send!", entity, []string{id}, nil)
		time.Sleep(pause)
	}
	return nil
}

func receive(ctx context.Context, client *azservicebus.Client, entity string) error {
	receiver, err := client.NewReceiverForQueue(queue, nil)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		began := now()
		asked, cancel := context.WithTimeout(ctx, time.Second)
		messages, err := receiver.ReceiveMessages(asked, 10, nil)
		isLate := asked.Err() != nil
		cancel()
		if err != nil && !isLate {
			return err
		}
		for _, message := range messages {
			lastGot.Store(time.Now().UnixNano())
			clock := float64(time.Now().UnixNano()) / 1e9
			ids := []string{message.MessageID}
			note("got", entity, ids, []any{*message.SequenceNumber, "queue", began, clock, string(message.Body) == body(message.MessageID)})
			note("complete?", entity, ids, nil)
			settling, cancel := timeout(ctx)
			err := receiver.CompleteMessage(settling, message, nil)
			cancel()
			if err != nil {
				return err
			}
			note("complete!", entity, ids, nil)
		}
	}
	return nil
}

// peek writes down what is left.
func peek(ctx context.Context, client *azservicebus.Client, entity string) error {
	receiver, err := client.NewReceiverForQueue(queue, nil)
	if err != nil {
		return err
	}
	var found []*azservicebus.ReceivedMessage
	next := int64(1)
	for {
		asked, cancel := timeout(ctx)
		page, err := receiver.PeekMessages(asked, 200, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &next})
		cancel()
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		found = append(found, page...)
		next = *page[len(page)-1].SequenceNumber + 1
	}
	for _, message := range found {
		note("left", entity, []string{message.MessageID}, []any{*message.SequenceNumber, "active"})
	}
	return nil
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "goload JOURNAL ADDRESS NAMESPACE...")
		os.Exit(2)
	}
	var err error
	journal, err = os.OpenFile(os.Args[1], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	check(err)
	address = os.Args[2]
	ctx, cancel := context.WithCancel(context.Background())
	var senders, receivers sync.WaitGroup
	for _, namespace := range os.Args[3:] {
		senders.Go(func() { forever(ctx, namespace, send) })
		receivers.Go(func() { forever(ctx, namespace, receive) })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stopping.Store(true)
	senders.Wait()
	lastGot.Store(time.Now().UnixNano())
	for began := time.Now(); time.Since(began) < drainTime && time.Since(time.Unix(0, lastGot.Load())) < quietTime; {
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	receivers.Wait()
	last, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for _, namespace := range os.Args[3:] {
		forever(last, namespace, peek)
	}
	check(last.Err())
	note("end", "", []string{}, nil)
}
