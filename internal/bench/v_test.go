package bench
import ("testing";"context";"fmt";"os")
func TestV(t *testing.T){ b:=&bench{Options:Options{Self:os.Getenv("SELF"),Progress:func(string){}}}
 if err:=b.validate(context.Background());err!=nil{t.Error(err)}
 for _,r:=range b.rows{fmt.Printf("%+v\n",r)} }
