package tg;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.EnumSet;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.ChecksumOpt;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.DataChecksum;

/**
 * An HDFS client that writes files when it is told to. args: host:port of the NameNode.
 *
 * <p>Each line of standard input is PLACE CHECKSUM MIB FILES: DISK, DISK+SYNC (synced at the end of each block) or LAZY;
 * CRC32C or NULL. It answers with the mean seconds of a file from create to close and the storage the first file is on,
 * and deletes the files.
 */
public class Writer {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    FileSystem fs = FileSystem.get(new URI("hdfs://" + args[0]), conf);
    byte[] piece = new byte[1 << 20];
    new Random(1).nextBytes(piece);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("READY");
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ");
      EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE);
      if (words[0].equals("LAZY")) flags.add(CreateFlag.LAZY_PERSIST);
      if (words[0].equals("DISK+SYNC")) flags.add(CreateFlag.SYNC_BLOCK);
      ChecksumOpt checksum = new ChecksumOpt(DataChecksum.Type.valueOf(words[1]), 512);
      int size = Integer.parseInt(words[2]), files = Integer.parseInt(words[3]);
      double total = 0;
      for (int n = 0; n < files; n++) {
        long began = System.nanoTime();
        try (FSDataOutputStream out = fs.create(path(n), FsPermission.getFileDefault(), flags, 1 << 16, (short) 1,
            128L << 20, null, checksum)) {
          for (int i = 0; i < size; i++) out.write(piece);
        }
        total += (System.nanoTime() - began) / 1e9;
      }
      String storage = fs.getFileBlockLocations(path(0), 0, 1)[0].getStorageTypes()[0].toString();
      for (int n = 0; n < files; n++) fs.delete(path(n), false);
      System.out.println(total / files + " " + storage);
    }
    System.exit(0);
  }

  private static Path path(int number) {
    return new Path("/bench/" + number);
  }
}
