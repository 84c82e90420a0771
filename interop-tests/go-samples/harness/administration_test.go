package admin_test

// As examples_test.go, for the administration client's examples.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"
)

func TestExamples(t *testing.T) {
	administrator, problem := admin.NewClientFromConnectionString(os.Getenv("SERVICEBUS_CONNECTION_STRING"), nil)
	require.NoError(t, problem)
	remove := func(t *testing.T, name string) {
		t.Helper()
		_, problem := administrator.DeleteQueue(context.Background(), name, nil)
		require.NoError(t, problem)
	}

	t.Run("admin ExampleNewClient", func(t *testing.T) {
		adminClient, err = nil, nil
		ExampleNewClient()
		require.NoError(t, err)
		require.NotNil(t, adminClient)
	})
	t.Run("admin ExampleNewClientFromConnectionString", func(t *testing.T) {
		// Its text is a placeholder, and the SDK says that it is no connection string.
		ExampleNewClientFromConnectionString()
		require.Error(t, err)
	})
	t.Run("admin ExampleClient_CreateQueue", func(t *testing.T) {
		adminClient = administrator
		text := printed(t, ExampleClient_CreateQueue)
		require.Equal(t, "Max message delivery count = 10\nLock duration: PT1M\n", text)
		remove(t, "queue-name")
	})
	t.Run("admin ExampleClient_CreateQueue_usingproperties", func(t *testing.T) {
		adminClient = administrator
		text := printed(t, ExampleClient_CreateQueue_usingproperties)
		require.Equal(t, "Max message delivery count = 10\nLock duration: PT1M\n", text)
		remove(t, "queue-name")
	})
	t.Run("admin ExampleClient_NewListQueuesPager", func(t *testing.T) {
		listed(t, administrator, ExampleClient_NewListQueuesPager, "Queue name: example-%d, max size in MB: 1024\n")
	})
	t.Run("admin ExampleClient_NewListQueuesRuntimePropertiesPager", func(t *testing.T) {
		listed(t, administrator, ExampleClient_NewListQueuesRuntimePropertiesPager, "Queue name: example-%d, active messages: 0\n")
	})
}

// listed makes more queues than there are in a page, and checks that an example prints each once.
func listed(t *testing.T, administrator *admin.Client, example func(), line string) {
	t.Helper()
	const many = 120
	for index := range many {
		name := fmt.Sprint("example-", index)
		_, problem := administrator.CreateQueue(context.Background(), name, nil)
		require.NoError(t, problem)
		t.Cleanup(func() { _, _ = administrator.DeleteQueue(context.Background(), name, nil) })
	}
	adminClient = administrator
	text := printed(t, example)
	for index := range many {
		require.Equal(t, 1, strings.Count(text, fmt.Sprintf(line, index)), text)
	}
}

// printed is what an example prints.
func printed(t *testing.T, example func()) string {
	t.Helper()
	reader, writer, problem := os.Pipe()
	require.NoError(t, problem)
	screen, text := os.Stdout, make(chan string, 1)
	os.Stdout = writer
	go func() {
		all, _ := io.ReadAll(reader)
		text <- string(all)
	}()
	func() {
		defer func() {
			os.Stdout = screen
			_ = writer.Close()
		}()
		example()
	}()
	return <-text
}
