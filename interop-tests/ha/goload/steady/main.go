// Command steady is a client of the Go SDK that has nothing but its defaults: ../../steady.py says what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	pause = 100 * time.Millisecond
	// After an error, an application tries again with the same sender or receiver.
	retryTime = 500 * time.Millisecond
	// CompleteMessage does not return if the connection is lost while it waits and its context has no deadline.
	answerTime = 5 * time.Second
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func send(sender *azservicebus.Sender) {
	for number := 1; ; {
		err := sender.SendMessage(context.Background(), &azservicebus.Message{Body: []byte(strconv.Itoa(number))}, nil)
		if err != nil {
			fmt.Printf("failed sending %d: %q\n", number, err)
			time.Sleep(retryTime)
			continue
		}
		fmt.Printf("sent %d\n", number)
		number++
		time.Sleep(pause)
	}
}

func receive(receiver *azservicebus.Receiver) {
	for {
		messages, err := receiver.ReceiveMessages(context.Background(), 10, nil)
		if err != nil {
			fmt.Printf("failed receiving: %q\n", err)
			time.Sleep(retryTime)
		}
		for _, message := range messages {
			// Before it is settled: if only the answer to that is lost, the message does not come again.
			fmt.Printf("received %s\n", message.Body)
			settling, cancel := context.WithTimeout(context.Background(), answerTime)
			err := receiver.CompleteMessage(settling, message, nil)
			cancel()
			var known *azservicebus.Error
			switch {
			case err == nil, errors.Is(err, context.DeadlineExceeded):
			case errors.As(err, &known) && (known.Code == azservicebus.CodeLockLost || known.Code == azservicebus.CodeConnectionLost):
				// Locks end with the connection or with the owner: the message comes again.
			default:
				fmt.Printf("failed completing %s: %q\n", message.Body, err)
			}
		}
	}
}

func main() {
	if len(os.Args) != 3 {
		check(errors.New("steady CONNECTION_STRING QUEUE"))
	}
	client, err := azservicebus.NewClientFromConnectionString(os.Args[1], nil)
	check(err)
	sender, err := client.NewSender(os.Args[2], nil)
	check(err)
	receiver, err := client.NewReceiverForQueue(os.Args[2], nil)
	check(err)
	go send(sender)
	go receive(receiver)
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
}
