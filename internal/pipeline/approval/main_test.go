package approval

import (
	"os"
	"testing"

	"retort/internal/devel/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
