// etcd, as upstream's own main does it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}
