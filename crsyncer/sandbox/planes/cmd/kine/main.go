// kine with its SQLite driver alone, which is what k3s runs: its other drivers take minutes to build.
package main

import (
	"context"
	"flag"
	"log"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// It does what `kine` does with the flags of the sandbox and its own defaults; the file is ./db/state.db.
// Source: kine 0.16.4, pkg/app/app.go (defaults) and pkg/endpoint/endpoint.go (Listen, grpcServer).
func main() {
	endpoint := flag.String("endpoint", "sqlite://", "the only one that is built in")
	address := flag.String("listen-address", "tcp://127.0.0.1:2379", "where etcd's clients connect")
	metrics := flag.String("metrics-bind-address", "0", "there are no metrics")
	flag.Parse()
	if *endpoint != "sqlite://" || *metrics != "0" {
		log.Fatal("allowed: --endpoint=sqlite:// and --metrics-bind-address=0")
	}
	ctx := context.Background()
	_, backend, err := sqlite.New(ctx, &sync.WaitGroup{}, &drivers.Config{
		ConnectionPoolConfig: generic.ConnectionPoolConfig{MaxIdle: 20, MaxIdleTime: 2 * time.Minute},
		CompactTimeout:       5 * time.Second,
		CompactMinRetain:     1000,
		CompactBatchSize:     1000,
		PollBatchSize:        500,
	})
	exitOn(err)
	exitOn(backend.Start(ctx))
	listener, err := net.Listen("tcp", strings.TrimPrefix(*address, "tcp://"))
	exitOn(err)
	grpcServer := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Hour, Timeout: 20 * time.Second}),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.MaxRecvMsgSize(2<<20),
		grpc.MaxSendMsgSize(math.MaxInt32),
	)
	server.New(backend, "http", 5*time.Second, "3.6.11").Register(grpcServer)
	exitOn(grpcServer.Serve(listener))
}

func exitOn(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
