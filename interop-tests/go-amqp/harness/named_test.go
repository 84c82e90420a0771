package amqp_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
)

var (
	made     sync.Map
	unnamed  = regexp.MustCompile(`[^A-Za-z0-9]+`)
	queueXML = `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription ` +
		`xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>`
)

// named makes a queue for an address that a test names, which the module's own test broker does at the first link, and returns the
// queue's name: the address without the characters that names cannot have.
func named(address string) string {
	name := strings.Trim(unnamed.ReplaceAllString(address, "-"), "-")
	making, _ := made.LoadOrStore(name, sync.OnceFunc(func() { makeQueue(name) }))
	making.(func())()
	return name
}

func makeQueue(name string) {
	request, err := http.NewRequest(http.MethodPut, os.Getenv("BROKER_HTTP")+"/"+name+"?api-version=2021-05", strings.NewReader(queueXML))
	if err != nil {
		panic(err)
	}
	// The development profile takes any.
	request.Header.Set("Authorization", "SharedAccessSignature sr=a&sig=b&se=9999999999&skn=c")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	answer.Body.Close()
	// 409: another process of the suite has made it.
	if answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusConflict {
		panic(fmt.Sprintf("%s was not made: %s", name, answer.Status))
	}
	// The tests look for goroutines that are left.
	http.DefaultClient.CloseIdleConnections()
}
