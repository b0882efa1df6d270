// Command demo is what the containers of the demo run, in one static binary: pause, which holds the
// namespaces of a pod, and web, a web server that says who it is. "web api PATH [HOST:PORT]" asks the
// API server as a client library in a pod does. "web connect HOST:PORT..." says what connections meet.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "pause":
		pause()
	default:
		switch {
		case len(os.Args) > 2 && os.Args[1] == "api":
			api(os.Args[2:])
		case len(os.Args) > 2 && os.Args[1] == "connect":
			connect(os.Args[2:])
		default:
			web()
		}
	}
}

// connect prints for each address, all tried at the same time, whether a connection is open, refused (nothing
// listens, but the packet arrived), or met with silence for 3 seconds.
func connect(targets []string) {
	lines := make(chan string)
	for _, target := range targets {
		go func() {
			connection, err := net.DialTimeout("tcp", target, 3*time.Second)
			var late net.Error
			switch {
			case err == nil:
				connection.Close()
				lines <- target + " open"
			case errors.Is(err, syscall.ECONNREFUSED):
				lines <- target + " refused"
			case errors.As(err, &late) && late.Timeout():
				lines <- target + " silent"
			default:
				lines <- target + " " + err.Error()
			}
		}()
	}
	for range targets {
		fmt.Println(<-lines)
	}
}

// api prints what the API server answers to the pod's token. The server must be the one that the pod's
// CA has signed for. Without a second argument it is the one in the environment.
func api(arguments []string) {
	const folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, err := os.ReadFile(folder + "token")
	fail(err)
	pem, err := os.ReadFile(folder + "ca.crt")
	fail(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	if len(arguments) > 1 {
		server = arguments[1]
	}
	client := http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	request, err := http.NewRequest("GET", "https://"+server+arguments[0], nil)
	fail(err)
	request.Header.Set("Authorization", "Bearer "+string(token))
	reply, err := client.Do(request)
	fail(err)
	defer reply.Body.Close()
	fmt.Println(reply.Status)
	_, err = io.Copy(os.Stdout, reply.Body)
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pause reaps orphans until it is told to end.
func pause() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for one := range signals {
		if one != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

// web answers every request with its host name and the greeting in $GREETING.
func web() {
	host, _ := os.Hostname()
	http.HandleFunc("/", func(reply http.ResponseWriter, request *http.Request) {
		fmt.Printf("%s %s\n", request.Method, request.URL.Path)
		fmt.Fprintf(reply, "%s from %s\n", os.Getenv("GREETING"), host)
	})
	if err := http.ListenAndServe(":8080", nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
